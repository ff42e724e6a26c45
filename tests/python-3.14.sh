#!/bin/sh
# Tests on CPython 3.14 from Debian's sid suite, in a folder of its own. Needs root and debootstrap.
set -eu
root=${QUERYPROF_314_ROOT:-/var/tmp/queryprof-3.14}
here=$(cd "$(dirname "$0")/.." && pwd)
if [ ! -x "$root/usr/bin/python3.14" ]; then
    debootstrap --variant=minbase \
        --include=python3.14,python3.14-venv,python3.14-dev,libpython3.14-testsuite,gcc,libc6-dev,git,ca-certificates \
        sid "$root"
fi
mkdir -p "$root/dev/pts"
for place in dev/pts proc; do
    mountpoint -q "$root/$place" || mount --bind "/$place" "$root/$place"
done
trap 'umount "$root/dev/pts" "$root/proc"' EXIT
ln -sf pts/ptmx "$root/dev/ptmx"
rm -rf "$root/work"
mkdir -p "$root/work"
cp -r "$here"/queryprof "$here"/hooks "$here"/cli "$here"/examples "$here"/tests "$root/work"
cp "$here"/setup.py "$here"/setup.cfg "$here"/pyproject.toml "$here"/README.md "$here"/LICENSE \
    "$here"/Makefile "$here"/CONTRIBUTING.md "$here"/requirements-dev.txt "$root/work"
cp -r "$here"/docs "$root/work"
find "$root/work" -name '*.so' -exec rm {} +
cp /etc/resolv.conf "$root/etc/resolv.conf"
wheels=${PIP_FIND_LINKS:-}
for certificates in ${PIP_CERT:-}; do
    mkdir -p "$root$(dirname "$certificates")"
    cp "$certificates" "$root$certificates"
done
chroot "$root" env PIP_FIND_LINKS="$wheels" sh -eu -c '
    cd /work
    python3.14 -m venv /venv
    /venv/bin/pip install --quiet setuptools .
    grep -E "^(airportsdata|hypothesis|jsonschema|pytest|sqlite-utils|datasette)==" \
        requirements-dev.txt > pinned.txt
    /venv/bin/pip install --quiet -r pinned.txt
    /venv/bin/pytest -q -m "not compat" tests
'
