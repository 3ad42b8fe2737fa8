;; The guest of role with a state, the seventh tensor, and a last state, the eighth, which have what its observation has.
;; include role
(func $observe (param $k i32) (param $t i32) (param $env i32)
  (local $of i32)
  (call $vector (local.get $k) (local.get $t) (local.get $env))
  (local.set $of (select (i32.const 6) (i32.const 7) (i32.eq (local.get $k) (i32.const 1))))
  (if (call $bound (local.get $of)) (then (call $vector (local.get $of) (local.get $t) (local.get $env)))))
