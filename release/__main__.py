"""The commands of a release: `python -m release dist|sbom|image|audit|site`."""

import argparse
import sys

from release.distributions import build_sdist, build_wheel
from release.image import make_image
from release.sbom import IMAGE_LOCK, LOCK, write_sbom
from release.site import build_site
from release.source import DIST, VERSION
from release.vulnerabilities import report


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="release")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("dist", help="wheel and sdist into dist/")
    commands.add_parser("sbom", help="the bills of materials into dist/")
    image = commands.add_parser("image", help="the container image: by docker or buildah, else assembled into dist/")
    image.add_argument("--name", help="default: topodns:VERSION or topodns-tools:VERSION")
    image.add_argument("--tools", action="store_true", help="with the package kubernetes, which reads kubeconfigs")
    image.add_argument("--assemble", action="store_true", help="ask neither docker nor buildah")
    audit = commands.add_parser("audit", help="known vulnerabilities of what is pinned")
    audit.add_argument("--strict", action="store_true", help="fail where the vulnerability database cannot be reached")
    commands.add_parser("site", help="the documents as a site, into dist/site")
    flags = parser.parse_args()
    if flags.command == "audit":
        return report(flags.strict)
    if flags.command == "image":
        print(make_image(flags.name, flags.assemble, flags.tools))
    elif flags.command == "sbom":
        write_sbom(DIST / f"topodns-{VERSION}.cdx.json", LOCK)
        write_sbom(DIST / f"topodns-{VERSION}.image.cdx.json", IMAGE_LOCK)
    elif flags.command == "site":
        print(build_site(DIST / "site"))
    else:
        print(build_wheel(DIST), build_sdist(DIST), sep="\n")
    return 0


sys.exit(main())
