#!/usr/bin/env bash
# Runs tests on an emulated processor that has AVX-512, for machines whose own has not: Bochs boots a Debian kernel
# whose first process (bench/emulate) runs the test binaries. Exits with 0 if all pass.
#
#   bench/emulate.sh [PACKAGE[=RUN] ...]     RUN is a pattern for -test.run; no arguments: every AVX-512 kernel, in short
#
# EMULATE_CPU is Bochs's model of the processor, EMULATE_SECONDS the limit for boot and tests together.
# The files lie in .cache/emulate: bochs.log, console.txt (all that the tests print), and the downloaded kernel.
set -euo pipefail
cd "$(dirname "$0")/.."

cpu=${EMULATE_CPU:-corei7_skylake_x}
limit=${EMULATE_SECONDS:-1200}
work=$PWD/.cache/emulate
given=$*
tests=("$@") short=
# The kernels alone, and every network of the backends' tests with both vector sets, whose bits are compared.
[ -n "$given" ] || tests=(./gpu/cpu/internal/kern=./avx512 ./gpu/cpu=VectorKernels) short=-test.short

fail() {
  printf 'emulate: %s\n' "$*" >&2
  exit 1
}

# Bochs and what makes an image that it boots.
install_tools() {
  local packages="bochs-term bochsbios vgabios genisoimage isolinux syslinux-common cpio"
  dpkg-query -W $packages >/dev/null 2>&1 && return
  [ "$(id -u)" = 0 ] || fail "missing: apt-get install $packages"
  { apt-get update && apt-get install -y --no-install-recommends $packages; } >"$work/apt.log" 2>&1 ||
    fail "cannot install $packages, see $work/apt.log"
}

# A kernel for virtual machines: few drivers, so it starts fast. It is not installed, only unpacked.
fetch_kernel() {
  [ ! -e "$work/vmlinuz" ] || return 0
  local package
  [ "$(id -u)" != 0 ] || apt-get update -qq >"$work/apt.log" 2>&1 || fail "cannot list packages, see $work/apt.log"
  package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\)$/\1/p' | head -1)
  [ -n "$package" ] || fail 'no package linux-image-cloud-amd64: apt-get update, on Debian for amd64'
  rm -rf "$work/kernel" && mkdir -p "$work/kernel"
  (cd "$work/kernel" && apt-get download -qq "$package" && dpkg-deb -x ./*.deb .) >"$work/apt.log" 2>&1 ||
    fail "cannot get $package, see $work/apt.log"
  cp "$work"/kernel/boot/vmlinuz-* "$work/vmlinuz"
  rm -rf "$work/kernel"
}

# The initial file system: the first process, the test binaries and the list of them.
pack_tests() {
  local root=$work/root argument package run name
  rm -rf "$root" && mkdir -p "$root/tests"
  CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$root/init" ./bench/emulate
  for argument in "${tests[@]}"; do
    package=${argument%%=*}
    run=.
    [ "$package" = "$argument" ] || run=${argument#*=}
    name=${package#./}
    name=${name//\//-}.test
    [ -e "$root/tests/$name" ] || CGO_ENABLED=0 go test -c -ldflags '-s -w' -o "$root/tests/$name" "$package"
    [ -e "$root/tests/$name" ] || fail "$package has no tests"
    printf '/tests/%s -test.v %s -test.run=%s\n' "$name" "$short" "$run" >>"$root/tests/list"
  done
  (cd "$root" && find . | cpio --quiet -o -H newc) >"$work/iso/initrd"
}

# tsc, timer, lpj and watchdog: nothing is calibrated against or watched by a clock that runs at another speed.
# clearcpuid: with XSAVEC and XSAVES as Bochs has them the kernel turns AVX off; without them it uses XSAVE.
write_image() {
  local iso=$work/iso
  cp "$work/vmlinuz" "$iso/vmlinuz"
  cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$iso/isolinux/"
  cat >"$iso/isolinux/isolinux.cfg" <<END
default tests
label tests
  kernel /vmlinuz
  append initrd=/initrd console=ttyS0,115200 quiet panic=0 nokaslr mitigations=off nosmp noapic clearcpuid=321,323 tsc=reliable no_timer_check lpj=1000000 nowatchdog rcupdate.rcu_cpu_stall_suppress=1
END
  genisoimage -quiet -R -b isolinux/isolinux.bin -c isolinux/boot.cat -no-emul-boot -boot-load-size 4 \
    -boot-info-table -o "$work/boot.iso" "$iso"
}

write_configuration() {
  cat >"$work/bochsrc" <<END
cpu: model=$cpu, count=1, ips=40000000, reset_on_triple_fault=0
clock: sync=none
megs: 512
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path=boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=console.txt
log: bochs.log
panic: action=fatal
sound: driver=dummy
speaker: enabled=0
display_library: term
END
  echo c >"$work/debugger" # Debian's build starts in its debugger: continue
}

# The display needs a terminal, which script makes, and opens another one for the machine's screen: Bochs stands still when
# nobody has read from that for some kilobytes. Turning the machine off is a panic to Bochs, so its own exit code says
# nothing: the verdict on the console does.
boot() {
  local machine screen=
  rm -f "$work"/console.txt "$work"/display.txt "$work"/*.lock
  (cd "$work" && TERM=xterm exec timeout -k 5 "$limit" \
    script -qefc 'bochs-bin -q -f bochsrc -rc debugger' /dev/null </dev/null >display.txt 2>&1) &
  machine=$!
  while [ -z "$screen" ] && kill -0 "$machine" 2>/dev/null; do
    sleep 0.2
    screen=$(sed -n 's/^Bochs connected to screen "\(.*\)".*/\1/p' "$work/display.txt")
  done
  [ -z "$screen" ] || cat "$screen" >/dev/null 2>&1 &
  wait "$machine" || true
  [ -e "$work/console.txt" ] || fail "Bochs did not start, see $work/display.txt"
}

# All that the tests print but the names of tests that pass below others.
report() {
  tr -d '\r' <"$work/console.txt" | grep -vE '^===|^ +--- PASS|^$' || true
  printf 'emulate: %d s in all\n' "$SECONDS"
  local whole="the whole console is in $work/console.txt"
  grep -q '^emulate: verdict PASS' "$work/console.txt" || fail "failed; $whole"
  # What does not run passes: the processor must have the instructions, and the patterns must name tests.
  grep -q '^emulate: flags.* avx512vl' "$work/console.txt" || fail "$cpu has no AVX-512; $whole"
  ! grep -q 'no tests to run' "$work/console.txt" || fail "a pattern names no test; $whole"
  [ -n "$given" ] || grep -q -- '--- PASS: .*/avx512' "$work/console.txt" || fail "no AVX-512 kernel ran; $whole"
}

mkdir -p "$work/iso/isolinux"
exec 9>"$work/running"
flock 9
install_tools
fetch_kernel
pack_tests
write_image
write_configuration
boot
report
