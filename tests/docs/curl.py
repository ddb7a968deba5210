"""A stand-in for curl where a machine has none: the few options that our pages use, over Python's own library."""

import argparse
import sys
import urllib.error
import urllib.request
from pathlib import Path


def main(arguments):
    """Print what an address answers, whatever its status, as curl does; 7 if nobody answers."""
    parser = argparse.ArgumentParser(prog="curl")
    parser.add_argument("-s", "--silent", action="store_true")
    parser.add_argument("-H", "--header", action="append", default=[])
    parser.add_argument("--json")
    parser.add_argument("address")
    asked = parser.parse_args(arguments)
    lines = [
        line
        for header in asked.header
        for line in (Path(header[1:]).read_text().split("\n") if header[0] == "@" else [header])
    ]
    headers = dict(line.split(": ", 1) for line in lines if line)
    if asked.json is not None:
        headers |= {"content-type": "application/json", "accept": "application/json"}
    body = None if asked.json is None else asked.json.encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(asked.address, body, headers), timeout=60) as answer:
            sys.stdout.write(answer.read().decode())
    except urllib.error.HTTPError as error:
        sys.stdout.write(error.read().decode())
    except urllib.error.URLError:
        return 7
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
