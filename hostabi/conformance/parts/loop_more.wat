;; As loop, and each environment writes what else it has behind its step: $more.
(func (export "rl_step") (param $batch i32) (param $t i32) (result i32)
  (local $env i32)
  (local $status i32)
  (local.set $status (call $ready (local.get $t) (i32.const 0) (i32.load (i32.const 0x2f04))))
  (if (local.get $status) (then (return (local.get $status))))
  (loop $next
    (local.set $status (call $advance (local.get $t) (local.get $env)))
    (if (local.get $status) (then (return (local.get $status))))
    (call $more (local.get $t) (local.get $env))
    (local.set $env (i32.add (local.get $env) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $env) (i32.load (i32.const 0x2f04)))))
  (i32.const 0))
