;; What an environment does at t: 0 or 1, or a status. A Discrete action of two values stands there as it is.
(func $act (param $t i32) (param $env i32) (result i32)
  (local $action i32)
  (local.set $action (i32.load (call $place (i32.const 0) (local.get $t) (local.get $env))))
  (if (i32.gt_u (local.get $action) (i32.const 1)) (then (return (i32.const -7)))) ;; RL_STATUS_ACTION
  (local.get $action))
