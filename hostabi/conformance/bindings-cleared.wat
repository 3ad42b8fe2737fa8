;; What rl_alloc gives holds bytes of another time: fields of bindings that are reserved are 0 nevertheless.
;; include memory
;; include describe
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
;; include reset
;; include step

(data (i32.const 0x2f20) "\04\04\04\01\01\04") ;; bytes of an element
(data (i32.const 0x2f28) "\00\01\00\00\00\02") ;; rows: those of the action, one more, one
(func $odd (param $x i32) (param $of i32) (result i32) (i32.rem_u (local.get $x) (local.get $of)))
(func (export "rl_bind") (param $batch i32) (param $bindings i32) (param $n i32) (result i32)
  (local $k i32) (local $b i32) (local $size i32) (local $rows i32) (local $align i32)
  (memory.copy (i32.const 0x2000) (local.get $bindings) (i32.mul (local.get $n) (i32.const 48)))
  (if (i32.ne (local.get $n) (i32.const 6)) (then (return (i32.const -1))))
  (loop $next
    (local.set $b (i32.add (i32.const 0x2000) (i32.mul (local.get $k) (i32.const 48))))
    (local.set $size (i32.load8_u offset=0x2f20 (local.get $k)))
    (local.set $rows (i32.load offset=20 (i32.const 0x2000)))
    (if (i32.eq (i32.load8_u offset=0x2f28 (local.get $k)) (i32.const 1)) (then (local.set $rows (i32.add (local.get $rows) (i32.const 1)))))
    (if (i32.eq (i32.load8_u offset=0x2f28 (local.get $k)) (i32.const 2))
      (then
        (local.set $rows (i32.const 1))
        (if (i32.load offset=4 (local.get $b)) (then (return (i32.const -1))))))
    (local.set $align (i32.load offset=24 (local.get $b)))
    (if (i32.or (i32.eqz (i32.load (local.get $b))) (call $odd (i32.load (local.get $b)) (i32.const 64))) (then (return (i32.const -1))))
    (if (i32.or (i32.or (call $odd (i32.load offset=4 (local.get $b)) (local.get $size)) (call $odd (i32.load offset=8 (local.get $b)) (local.get $size)))
                (call $odd (i32.load offset=16 (local.get $b)) (local.get $size))) (then (return (i32.const -1))))
    (if (i32.ne (i32.load offset=20 (local.get $b)) (local.get $rows)) (then (return (i32.const -1))))
    (if (i32.ne (i32.popcnt (local.get $align)) (i32.const 1)) (then (return (i32.const -1))))
    (if (i32.or (i32.or (call $odd (i32.load (local.get $b)) (local.get $align)) (call $odd (i32.load offset=8 (local.get $b)) (local.get $align)))
                (call $odd (i32.load offset=4 (local.get $b)) (local.get $align))) (then (return (i32.const -1))))
    (if (i32.or (i32.load offset=28 (local.get $b)) (i32.or (i32.load offset=32 (local.get $b)) (i32.or (i32.load offset=36 (local.get $b))
                (i32.or (i32.load offset=40 (local.get $b)) (i32.load offset=44 (local.get $b)))))) (then (return (i32.const -1))))
    (local.set $k (i32.add (local.get $k) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $k) (i32.const 6))))
  (i32.const 0))
