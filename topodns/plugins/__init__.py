"""The plugins, one module or folder each; `order` has the list of them."""
