;; The same of records longer than version 1 has them: a binding has zeros behind.
;; include memory
(data (i32.const 0x400) "\90\00\00\00\01\00\09\00") ;; a head of 144 bytes, ABI 1.9
(data (i32.const 0x418) "\90\00\40\00\28\00\38\00" "\06\00\00\00\01\00\00\00\01\00\00\00") ;; 144, 64, 40, 56; one group, one argument
(data (i32.const 0x42c) "\00\08\00\00\20\00\00\00")
(data (i32.const 0x43c) "\07\00\00\00")
(data (i32.const 0x45c) "\00\00\c0\7f")
(data (i32.const 0x468) "\01\00\00\00\0d\00\00\00")
(data (i32.const 0x488) "later fi")
(data (i32.const 0x490) "\0f\00\00\00\01\00\00\00") ;; the group: "all", one agent
(data (i32.const 0x4b0) "laterlat")
;; Tensors of 144 bytes from 0x4b8 on.
(data (i32.const 0x4b8) "\01\00\00\00\00\00\04\00\02\00\00\00")
(data (i32.const 0x4e4) "\02\00\00\00")
(data (i32.const 0x538) "later tensor    ")
(data (i32.const 0x548) "\02\00\00\00\00\00\08\01\c4\00\00\00\02\00\00\00")
(data (i32.const 0x5d8) "\03\00\00\00\00\00\08\00\02\00\00\00")
(data (i32.const 0x668) "\04\00\00\00\00\00\01\00\02\00\00\00")
(data (i32.const 0x6f8) "\05\00\00\00\00\00\01\00\02\00\00\00")
(data (i32.const 0x788) "\07\00\00\00\00\00\08\01\c8\00\00\00\02\00\00\00")
(data (i32.const 0x808) "later tensor    ")
(data (i32.const 0x818) "\13\00\00\00\00\00\00\00\01\00\00\00") ;; an integer argument, "size"
(data (i32.const 0x848) "laterlat")
(data (i32.const 0xc00) "\00conformance\001\00all\00size\00")
(func (export "rl_describe") (param $config i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (if (i32.ge_u (local.get $cap) (i32.const 0x900))
    (then (memory.copy (local.get $buf) (i32.const 0x400) (i32.const 0x900))))
  (i32.const 0x900))
;; Memory is given from the heap on and never taken back.
(func (export "rl_alloc") (param $size i32) (param $align i32) (result i32)
  (local $at i32)
  (local.set $at (i32.and (i32.sub (i32.add (global.get $heap) (local.get $align)) (i32.const 1))
                          (i32.sub (i32.const 0) (local.get $align))))
  (global.set $heap (i32.add (local.get $at) (local.get $size)))
  (block $enough
    (loop $grow
      (br_if $enough (i32.ge_u (i32.shl (memory.size) (i32.const 16)) (global.get $heap)))
      (br_if $grow (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))
      (return (i32.const 0))))
  (memory.fill (local.get $at) (i32.const 0xaa) (local.get $size))
  (local.get $at))
(func (export "rl_free") (param i32 i32))
;; include create
(func (export "rl_bind") (param $batch i32) (param $bindings i32) (param $n i32) (result i32)
  (local $i i32) (local $from i32)
  (loop $next
    (local.set $from (i32.add (local.get $bindings) (i32.mul (local.get $i) (i32.const 64))))
    (if (i64.ne (i64.or (i64.load offset=48 (local.get $from)) (i64.load offset=56 (local.get $from))) (i64.const 0))
      (then (return (i32.const -1))))
    (memory.copy (i32.add (i32.const 0x2000) (i32.mul (local.get $i) (i32.const 48))) (local.get $from) (i32.const 48))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (local.get $n))))
  (i32.const 0))
;; include reset
;; include step
