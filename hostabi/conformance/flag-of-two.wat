;; A host refuses a flag that is neither 0 nor 1.
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
  (local.set $status (call $ready (local.get $t) (i32.const 0) (i32.load (i32.const 0x2f04))))
  (if (local.get $status) (then (return (local.get $status))))
  (loop $next
    (local.set $status (call $advance (local.get $t) (local.get $env)))
    (if (local.get $status) (then (return (local.get $status))))
    (local.set $env (i32.add (local.get $env) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $env) (i32.load (i32.const 0x2f04)))))
  (i32.store8 (call $place (i32.const 3) (local.get $t) (i32.const 1)) (i32.const 2))
  (i32.const 0))
