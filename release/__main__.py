"""The commands of a release: `python -m release dist|sbom|image|chart|all|dry-run|push|audit|site`."""

import argparse
import sys

from release.distributions import build_sdist, build_wheel
from release.image import make_image
from release.publication import Unready, build_chart, build_release, dry_run, push, write_boms
from release.site import build_site
from release.source import DIST
from release.vulnerabilities import report
from tests.kubelab.images import WHEELS


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
    image.add_argument("--architecture", choices=WHEELS, help="default: this machine's")
    commands.add_parser("chart", help="the package of the chart into dist/ (Go, to build helm)")
    commands.add_parser("all", help="everything of a release into dist/, from a tagged commit")
    commands.add_parser("dry-run", help="the same of the last commit, tagged in a scratch clone")
    pushed = commands.add_parser("push", help="images and chart of dist/ to a registry (skopeo); prints NAME=DIGEST")
    pushed.add_argument("registry", help="such as ghcr.io/OWNER")
    pushed.add_argument("--plain-http", action="store_true", help="for a registry on this machine")
    audit = commands.add_parser("audit", help="known vulnerabilities of what is pinned")
    audit.add_argument("--strict", action="store_true", help="fail where the vulnerability database cannot be reached")
    commands.add_parser("site", help="the documents as a site, into dist/site")
    try:
        return _run(parser.parse_args())
    except (Unready, OSError) as problem:
        print(f"{parser.prog}: {problem}", file=sys.stderr)
        return 1


def _run(flags: argparse.Namespace) -> int:
    match flags.command:
        case "audit":
            return report(flags.strict)
        case "image":
            print(make_image(flags.name, flags.assemble, flags.tools, flags.architecture or ""))
        case "sbom":
            write_boms()
        case "site":
            print(build_site(DIST / "site"))
        case "chart":
            print(build_chart(DIST))
        case "all":
            build_release()
        case "dry-run":
            dry_run(DIST)
        case "push":
            digests = push(DIST, flags.registry, flags.plain_http)
            print(*(f"{name}={digest}" for name, digest in digests.items()), sep="\n")
        case _:
            print(build_wheel(DIST), build_sdist(DIST), sep="\n")
    return 0


sys.exit(main())
