#!/usr/bin/env bash
# exports_test.sh LIBRARY LIST LATER: what libnccl.so.2 exports is what NCCL 2.28.9 does (LIST) and the names that 2.30
# has in addition (LATER), and nothing else. The nccl names are weak, their twins are strong; and it calls its own public
# names through the procedure linkage table, as the real one does, so that a preloaded library sees those calls.
set -euo pipefail
library=$1 list=$2 later=$3
for tool in nm readelf; do
    command -v "$tool" >/dev/null || { echo "SKIP: $tool not found"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@.*//' | grep -v '^__[atu]s\?an\|^_init$\|^_fini$' | sort >"$folder/has"
sort -u "$list" "$later" >"$folder/wanted"
if ! diff "$folder/wanted" "$folder/has"; then
    echo "the exports differ: '<' is missing, '>' is too much"
    exit 1
fi
strong=$(nm -D --defined-only "$library" | awk '$2 != "W" && $3 ~ /^nccl/ { print $3 }' | tr '\n' ' ')
[ "$strong" = "ncclResetDebugInitInternal " ] || { echo "these nccl names are strong: $strong"; exit 1; }
weak=$(nm -D --defined-only "$library" | awk '$2 == "W" && $3 ~ /^pnccl/ { print $3 }')
[ -z "$weak" ] || { echo "these twins are weak: $weak"; exit 1; }
readelf -rW "$library" >"$folder/relocations"
for name in ncclBroadcast ncclCommDeregister ncclCommRegister ncclGetErrorString ncclGetUniqueId ncclGetVersion \
    ncclResetDebugInitInternal ncclTeamWorld; do
    grep -q "_JU*MP_SLOT.* $name\b" "$folder/relocations" || { echo "$name is not called through the table"; exit 1; }
done
echo "$(wc -l <"$folder/has") names as wanted"
