"""YAML as a person would write it: keys in their order, texts of several lines as they are."""

import yaml


class _Readable(yaml.SafeDumper):
    pass


_Readable.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, "|" if "\n" in text else None)
)


def readable_yaml(value: object) -> str:
    return yaml.dump(value, Dumper=_Readable, sort_keys=False, width=200)
