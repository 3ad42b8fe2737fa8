;; Row T of an observation stands in row 0 of the block that is bound next: the guest finds what it wrote last wherever it stands now.
;; include frame
;; include place
;; include observe
;; include advance
(func $found (param $t i32) (param $env i32)
  (if (f32.ne (f32.load (call $place (i32.const 1) (local.get $t) (local.get $env))) (f32.convert_i32_s (i32.load (call $state (local.get $env)))))
    (then (unreachable))))
(func (export "rl_step") (param $batch i32) (param $t i32) (result i32)
  (local $env i32) (local $status i32)
  (local.set $status (call $ready (local.get $t) (i32.const 0) (i32.load (i32.const 0x2f04))))
  (if (local.get $status) (then (return (local.get $status))))
  (loop $next
    (call $found (local.get $t) (local.get $env))
    (local.set $status (call $advance (local.get $t) (local.get $env)))
    (if (local.get $status) (then (return (local.get $status))))
    (local.set $env (i32.add (local.get $env) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $env) (i32.load (i32.const 0x2f04)))))
  (i32.const 0))
