;; A tensor of a role that version 1 does not have has elements, rows and an alignment as any other; the strides of its rows may be 0.
;; include memory
;; include describe
;; include alloc
;; include create
;; include bind
;; include reset

;; include place
;; include observe
;; include advance
(func $bound (param $at i32) (param $rows i32)
  (if (i32.ne (i32.load offset=16 (local.get $at)) (i32.const 8)) (then (unreachable)))               ;; dense: no strides are offered
  (if (i32.ne (i32.load offset=20 (local.get $at)) (local.get $rows)) (then (unreachable)))            ;; as a reward has rows
  (if (i32.ne (i32.popcnt (i32.load offset=24 (local.get $at))) (i32.const 1)) (then (unreachable)))
  (if (i32.rem_u (i32.load (local.get $at)) (i32.load offset=24 (local.get $at))) (then (unreachable))))
(func (export "rl_step") (param $batch i32) (param $t i32) (result i32)
  (local $env i32) (local $status i32)
  (if (i32.eqz (i32.load (i32.const 0x2120))) (then (return (i32.const -1)))) ;; the seventh binding
  (call $bound (i32.const 0x2120) (i32.load (i32.const 0x2074)))
  (local.set $status (call $ready (local.get $t) (i32.const 0) (i32.load (i32.const 0x2f04))))
  (if (local.get $status) (then (return (local.get $status))))
  (loop $next
    (f64.store (call $place (i32.const 6) (local.get $t) (local.get $env)) (f64.const nan))
    (f64.store (i32.add (call $place (i32.const 6) (local.get $t) (local.get $env)) (i32.mul (i32.const 4) (call $apart (i32.const 6)))) (f64.const nan))
    (local.set $status (call $advance (local.get $t) (local.get $env)))
    (if (local.get $status) (then (return (local.get $status))))
    (local.set $env (i32.add (local.get $env) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $env) (i32.load (i32.const 0x2f04)))))
  (i32.const 0))
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\84\03\00\00\00\00\05\01\02\00\00\00\05\00\00\00")
