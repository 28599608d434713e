#!/bin/sh
# delayed.sh DRIVERS NAME LAYER NS: makes the driver NAME of the one in Python, which is built in DRIVERS, with a delay of
# so many nanoseconds in one of its layers; delayed.py says which there are.
set -e
from="$1/python"
to="$1/$2"
rm -rf "$to"
cp -r "$from" "$to"
cp "$(dirname "$0")/delayed.py" "$to"
sed -i -e "s/^name = \"python\"/name = \"$2\"/" -e "s/^run = .*/run = \"python3 delayed.py $3 $4\"/" "$to/driver.toml"
if [ "$3" = broker ]; then
  cat >> "$to/driver.toml" <<'MECHANISM'

[[mechanism]]
name = "relayed"
workloads = ["latency"]
summary = "a broker"
without = "unix-stream"
adds = "the broker"
MECHANISM
fi
