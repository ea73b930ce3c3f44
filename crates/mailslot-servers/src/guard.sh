# Waits until the process that started it is gone, which closes its standard input. Then ends every process that works
# in the directory, and removes it. After an orderly end there is no directory any more, and nothing to do.
directory=$1
while read -r _; do :; done
[ -d "$directory" ] || exit 0

attempts=100
while [ "$attempts" -gt 0 ]; do
    places=$(find /proc -mindepth 2 -maxdepth 2 -name cwd \
        \( -lname "$directory" -o -lname "$directory/*" \) 2>/dev/null)
    [ -n "$places" ] || break
    for place in $places; do
        pid=${place#/proc/}
        kill -KILL "${pid%/cwd}" 2>/dev/null
    done
    attempts=$((attempts - 1))
    sleep 0.1
done

# A killed PostgreSQL leaves a small piece of shared memory: the seventh line is its key and its number.
segment=$(sed -n '7s/.* //p' "$directory/data/postmaster.pid" 2>/dev/null)
[ -z "$segment" ] || ipcrm -m "$segment" 2>/dev/null
rm -rf -- "$directory"
