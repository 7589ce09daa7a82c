#!/bin/sh
# The STAND-IN for tart: see main.ts, which does everything. What our driver asks for most often is answered here, in the
# same words, because it takes a hundredth of the time. $SVC3_STAND_IN is Node and main.ts, set where this is installed.
name=$2
[ "$1 $2" != 'exec -i' ] || name=$3
folder=${TART_HOME:-$HOME/.tart}/vms/$name
pid=0
[ ! -f "$folder/stand-in.pid" ] || read -r pid < "$folder/stand-in.pid"
faults=${TART_HOME:-$HOME/.tart}/stand-in.faults
is_running() { [ "$pid" -gt 0 ] && tr '\0' ' ' < "/proc/$pid/cmdline" 2> /dev/null | grep -q " run $2 "; }
[ -f "$faults" ] && case $1 in --version) ;; *) exec $SVC3_STAND_IN "$@" ;; esac
case $1 in
  --version) echo 2.35.0-stand-in; exit ;;
  get) [ "$3" = --format ] && [ -f "$folder/config.json" ] && is_running "$@" && { echo '{"Running":true,"State":"running"}'; exit; } ;;
  ip) [ "$5" = --resolver ] && is_running "$@" && [ -f "$folder/stand-in.$6" ] && cat "$folder/stand-in.$6" && exit ;;
  exec) [ -f "$folder/stand-in.guest-agent" ] || { echo 'the guest has no guest agent' >&2; exit 1; } ;;
  suspend) [ $# = 2 ] && is_running "$@" && kill -USR1 "$pid" && exit ;;
  stop)
    is_running "$@" && [ "$3" = --timeout ] && {
      kill -INT "$pid"
      n=0
      while is_running "$@"; do
        [ $n -lt $(($4 * 20)) ] || { kill -KILL "$pid"; exit; }
        n=$((n + 1))
        sleep 0.05
      done
      exit
    }
    ;;
esac
exec $SVC3_STAND_IN "$@"
