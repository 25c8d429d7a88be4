#!/bin/bash
# On a GPU: bash run.sh, results to $OUT. Wheels beside it are unpacked; a checkout of syncscan two folders above is used where it is.
set -u
here=$(cd "$(dirname "$0")" && pwd); work=/tmp/joint.$$; mkdir -p "$work/site" "$work/cache" "$OUT"
for w in "$here"/wheels/*.whl; do [ -e "$w" ] && python3 -m zipfile -e "$w" "$work/site"; done
root=$PWD; [ -d "$root/syncscan" ] || root=$(cd "$here/../.." && pwd)
export PYTHONPATH="$work/site:$root${PYTHONPATH:+:$PYTHONPATH}" TORCHINDUCTOR_CACHE_DIR="$work/cache" TORCHINDUCTOR_COMPILE_THREADS=1 TRITON_CACHE_DIR="$work/cache/triton"
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
python3 -c "import torch; print(torch.__version__, torch.cuda.is_available() and torch.cuda.get_device_name())
try:
    import syncscan, syncscan.capture.session; print('syncscan', syncscan.__version__)
except Exception as e: print('no syncscan:', e)"
command -v nvidia-smi > /dev/null && nvidia-smi --query-gpu=name,clocks.sm,power.draw --format=csv,noheader
lscpu | grep -E 'Model name|^CPU\(s\)'
timeout -k 2 "${LIMIT:-330}" python3 "$here/measure.py" "$OUT" --work "$work/programs" --deadline "${DEADLINE:-318}" "$@" 2>&1 | tee "$OUT/log.txt"
tail -c 1500 "$work"/programs/*.txt > "$OUT/processes.txt"
ls -la "$OUT"
