;; 256 signals, 256 slots and 256 columns, the most that there are.
;; include imports
;; include memory
;; include marker
;; include alloc
;; include check
;; include configure
;; include records
;; include start
;; include slot
(global $to (mut i32) (i32.const 0))
(func $name (param $at i32) (param $k i32) ;; an x and two letters
  (i32.store8 (local.get $at) (i32.const 120))
  (i32.store8 offset=1 (local.get $at) (i32.add (i32.const 97) (i32.rem_u (local.get $k) (i32.const 16))))
  (i32.store8 offset=2 (local.get $at) (i32.add (i32.const 97) (i32.div_u (local.get $k) (i32.const 16)))))
(func $ports (param $from i32) (param $have i32) ;; those that there are, then as many of the payload note that there are 256
  (local $k i32)
  (memory.copy (global.get $to) (local.get $from) (i32.mul (local.get $have) (i32.const 40)))
  (local.set $k (local.get $have))
  (loop $next
    (i32.store (i32.add (global.get $to) (i32.mul (local.get $k) (i32.const 40))) (i32.add (i32.const 0x150) (i32.shl (local.get $k) (i32.const 2))))
    (i32.store offset=4 (i32.add (global.get $to) (i32.mul (local.get $k) (i32.const 40))) (i32.const 0x1a))
    (br_if $next (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 256))))
  (global.set $to (i32.add (global.get $to) (i32.const 10240))))
(func (export "rl_manifest") (param $buf i32) (param $cap i32) (result i32)
  (local $k i32)
  (if (i32.lt_u (local.get $cap) (i32.const 28080)) (then (return (i32.const 28080))))
  (memory.fill (local.get $buf) (i32.const 0) (i32.const 28080))
  (memory.copy (local.get $buf) (i32.const 0x400) (i32.const 96))
  (global.set $to (i32.add (local.get $buf) (i32.const 96)))
  (call $ports (i32.const 0x460) (i32.const 2))
  (call $ports (i32.const 0x4b0) (i32.const 4))
  (memory.copy (global.get $to) (i32.const 0x550) (i32.const 96))
  (local.set $k (i32.const 4))
  (loop $next ;; optional columns that no block has
    (i32.store offset=4 (i32.add (global.get $to) (i32.mul (local.get $k) (i32.const 24))) (i32.add (i32.const 0x150) (i32.shl (local.get $k) (i32.const 2))))
    (i32.store offset=8 (i32.add (global.get $to) (i32.mul (local.get $k) (i32.const 24))) (i32.const 2))
    (br_if $next (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 256))))
  (global.set $to (i32.add (global.get $to) (i32.const 6144)))
  (memory.copy (global.get $to) (i32.const 0x5b0) (i32.const 0x150))
  (local.set $k (i32.const 0))
  (loop $next
    (call $name (i32.add (i32.add (global.get $to) (i32.const 0x150)) (i32.shl (local.get $k) (i32.const 2))) (local.get $k))
    (br_if $next (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 256))))
  (i32.const 28080))
(data (i32.const 0x418) "\00\01\00\00\00\01\00\00\00\01\00\00\60\68\00\00\50\05")
