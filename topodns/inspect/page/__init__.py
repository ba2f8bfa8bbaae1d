"""The topology page: Services by topology zone in a browser, live, with explanations and what-if.

Loaded only where an option `page` of `topology` asks for it: a node cache never does.
"""
