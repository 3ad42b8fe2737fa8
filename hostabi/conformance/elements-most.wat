;; A tensor of 2^24 elements, the most that there are, of a role that version 1 does not have.
;; include memory
;; include describe
;; include alloc
;; include create
;; include bind
;; include reset

;; include place
;; include observe
;; include advance
(func (export "rl_step") (param $batch i32) (param $t i32) (result i32)
  (local $env i32) (local $status i32)
  (if (i32.eqz (i32.load (i32.const 0x2120))) (then (return (i32.const -1)))) ;; the seventh binding
  (local.set $status (call $ready (local.get $t) (i32.const 0) (i32.load (i32.const 0x2f04))))
  (if (local.get $status) (then (return (local.get $status))))
  (loop $next
    (f64.store (call $place (i32.const 6) (local.get $t) (local.get $env)) (f64.const nan))
    (i32.store8 (i32.add (call $place (i32.const 6) (local.get $t) (local.get $env)) (i32.mul (i32.const 0xffffff) (call $apart (i32.const 6)))) (i32.const 1))
    (local.set $status (call $advance (local.get $t) (local.get $env)))
    (if (local.get $status) (then (return (local.get $status))))
    (local.set $env (i32.add (local.get $env) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $env) (i32.load (i32.const 0x2f04)))))
  (i32.const 0))
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\84\03\00\00\00\00\01\01\02\00\00\00\00\00\00\01")
