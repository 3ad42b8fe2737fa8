(func $write (param $t i32) (param $env i32) (param $reward i32) (param $terminated i32) (param $truncated i32)
  (f32.store (call $place (i32.const 2) (local.get $t) (local.get $env)) (f32.convert_i32_s (local.get $reward)))
  (i32.store8 (call $place (i32.const 3) (local.get $t) (local.get $env)) (local.get $terminated))
  (i32.store8 (call $place (i32.const 4) (local.get $t) (local.get $env)) (local.get $truncated)))

;; Whether the actions of some environments at t lie in their spaces: the status of the first that does not, else 0. None has moved.
(func $ready (param $t i32) (param $env i32) (param $count i32) (result i32)
  (local $status i32)
  (block $done
    (loop $next
      (br_if $done (i32.eqz (local.get $count)))
      (i32.store (i32.const 0x2f08) (local.get $env)) ;; which it is about
      (if (i32.eqz (i32.load offset=8 (call $state (local.get $env)))) ;; the action of one that waits is not read
        (then
          (local.set $status (call $act (local.get $t) (local.get $env)))
          (if (i32.lt_s (local.get $status) (i32.const 0)) (then (return (local.get $status))))))
      (local.set $env (i32.add (local.get $env) (i32.const 1)))
      (local.set $count (i32.sub (local.get $count) (i32.const 1)))
      (br $next)))
  (i32.const 0))

;; One environment makes its step t.
(func $advance (param $t i32) (param $env i32) (result i32)
  (local $s i32) (local $action i32) (local $over i32)
  (local.set $s (call $state (local.get $env)))
  (if (i32.load offset=8 (local.get $s))
    (then ;; the step after an end: its action is not read, and under disabled it changes nothing
      (if (i32.eq (i32.load (i32.const 0x2f00)) (i32.const 1))
        (then
          (call $draw (local.get $env))
          (call $begin (local.get $env))))
      (call $write (local.get $t) (local.get $env) (i32.const 0) (i32.const 0) (i32.const 0))
      (call $observe (i32.const 1) (i32.add (local.get $t) (i32.const 1)) (local.get $env))
      (return (i32.const 0))))
  (local.set $action (call $act (local.get $t) (local.get $env)))
  (i32.store (local.get $s) (i32.add (i32.load (local.get $s)) (i32.const 1)))
  (local.set $over (i32.eq (i32.load (local.get $s)) (i32.const 3)))
  (call $write (local.get $t) (local.get $env) (local.get $action)
    (i32.and (local.get $over) (local.get $action))
    (i32.and (local.get $over) (i32.eqz (local.get $action))))
  (if (local.get $over)
    (then
      (if (i32.eq (i32.load (i32.const 0x2f00)) (i32.const 2))
        (then ;; same step: the last observation has a tensor of its own
          (call $observe (i32.const 5) (i32.const 0) (local.get $env))
          (call $draw (local.get $env))
          (call $begin (local.get $env)))
        (else (i32.store offset=8 (local.get $s) (i32.const 1))))))
  (call $observe (i32.const 1) (i32.add (local.get $t) (i32.const 1)) (local.get $env))
  (i32.const 0))
