;; The last observation of an agent is read where its own flag is set, also where its environment continues: here it is not finite.
;; include agents_base
(global $acts i32 (i32.const -1))
(func (export "rl_step") (param $batch i32) (param $t i32) (result i32)
  (local $env i32) (local $status i32) (local $at i32)
  (local.set $status (call $ready (local.get $t) (i32.const 0) (i32.load (i32.const 0x2f04))))
  (if (local.get $status) (then (return (local.get $status))))
  (loop $next
    (local.set $status (call $advance (local.get $t) (local.get $env)))
    (if (local.get $status) (then (return (local.get $status))))
    (call $same (i32.const 2) (call $place (i32.const 2) (local.get $t) (local.get $env)) (i32.const 4))
    (call $same (i32.const 3) (call $place (i32.const 3) (local.get $t) (local.get $env)) (i32.const 1))
    (call $same (i32.const 4) (call $place (i32.const 4) (local.get $t) (local.get $env)) (i32.const 1))
    (if (i32.eq (i32.load (call $state (local.get $env))) (i32.const 1))
      (then
        (i32.store8 (i32.add (call $place (i32.const 3) (local.get $t) (local.get $env)) (call $next (i32.const 3))) (i32.const 1))
        (local.set $at (i32.add (call $place (i32.const 5) (i32.const 0) (local.get $env)) (call $next (i32.const 5))))
        (f32.store (local.get $at) (f32.const nan))
        (f32.store (i32.add (local.get $at) (call $apart (i32.const 5))) (f32.const 78))))
    (local.set $env (i32.add (local.get $env) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $env) (i32.load (i32.const 0x2f04)))))
  (i32.const 0))
