"""Makes webhooks.ndjson from the package that README.md names.

    npm pack @octokit/webhooks-examples@7.6.1
    tar xzf octokit-webhooks-examples-7.6.1.tgz
    python3 make.py package/api.github.com/index.json > webhooks.ndjson

One line for each example, in the order of the package: its event, its place among the examples of that event, and
its payload. Only white space changes, and characters outside ASCII are written as escapes, so that the file is plain
text everywhere; the JSON values are the same.
"""

import json
import sys

for kind in json.load(open(sys.argv[1], encoding="utf-8")):
    for index, payload in enumerate(kind["examples"]):
        line = {"event": kind["name"], "index": index, "payload": payload}
        print(json.dumps(line, separators=(",", ":")))
