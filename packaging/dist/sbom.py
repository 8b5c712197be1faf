#!/usr/bin/env python3
"""sbom.py BUILD PREFIX VERSION COMMIT TIME OUTPUT: writes the bill of materials of an installation, as SPDX 2.3 JSON.

It lists the installed programs with their checksums, and the packages that each contains or loads.
"""
import datetime
import hashlib
import json
import pathlib
import re
import sys

from components import collect

RELATION = {"static": "STATIC_LINK", "header": "STATIC_LINK", "dynamic": "DYNAMIC_LINK"}


def spdx_id(kind, name):
    return f"SPDXRef-{kind}-{re.sub(r'[^A-Za-z0-9.-]', '-', name)}"


def package_entry(facts):
    return {
        "name": facts["package"],
        "SPDXID": spdx_id("Package", facts["package"]),
        "versionInfo": facts["version"],
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "homepage": facts["homepage"] or "NOASSERTION",
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": facts["licence"],
        "copyrightText": "NOASSERTION",
        "sourceInfo": f"source package {facts['source']}",
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{facts['package']}@{facts['version']}",
        }],
    }


def file_entry(prefix, path):
    content = path.read_bytes()
    return {
        "fileName": f"./{path.relative_to(prefix)}",
        "SPDXID": spdx_id("File", path.name),
        "fileTypes": ["BINARY"],
        "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(content, usedforsecurity=False).hexdigest()},
                      {"algorithm": "SHA256", "checksumValue": hashlib.sha256(content).hexdigest()}],
        "licenseConcluded": "NOASSERTION",
        "copyrightText": "NOASSERTION",
    }


def main(build, prefix, version, commit, time, output):
    prefix = pathlib.Path(prefix)
    programs, packages = collect(build)
    own = "SPDXRef-Package-caisson"
    relationships = [("SPDXRef-DOCUMENT", "DESCRIBES", own, None)]
    files, used = [], {}
    for program, uses in sorted(programs.items()):
        path = next(found for folder in ("bin", "libexec/caisson") if (found := prefix / folder / program).exists())
        files.append(file_entry(prefix, path))
        relationships.append((own, "CONTAINS", files[-1]["SPDXID"], None))
        for package, how in sorted(uses.items()):
            facts = packages.facts(package)
            used[facts["package"]] = facts
            relationships.append((files[-1]["SPDXID"], RELATION[how], spdx_id("Package", facts["package"]),
                                  "headers only" if how == "header" else None))
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"caisson-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/caisson-{version}-{commit}-{files[0]['checksums'][1]['checksumValue'][:16]}",
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(int(time), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: caisson-{version}-sbom.py"],
        },
        "documentDescribes": [own],
        "packages": [{
            "name": "caisson",
            "SPDXID": own,
            "versionInfo": version,
            "supplier": "NOASSERTION",
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "licenseConcluded": "Apache-2.0",
            "licenseDeclared": "Apache-2.0",
            "copyrightText": "NOASSERTION",
            "sourceInfo": f"commit {commit}",
        }] + [package_entry(used[name]) for name in sorted(used)],
        "files": files,
        "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
                          | ({"comment": comment} if comment else {}) for one, kind, other, comment in relationships],
    }
    pathlib.Path(output).write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    main(*sys.argv[1:])
