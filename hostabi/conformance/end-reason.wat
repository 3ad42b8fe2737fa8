;; Why an episode ends: 1 where it is terminated, 2 where it is truncated.
;; include role_observe
(func $more (param $t i32) (param $env i32)
  (i32.store8 (call $place (i32.const 6) (local.get $t) (local.get $env)) (i32.or (i32.load8_u (call $place (i32.const 3) (local.get $t) (local.get $env))) (i32.shl (i32.load8_u (call $place (i32.const 4) (local.get $t) (local.get $env))) (i32.const 1)))))
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\11\00\00\00\00\00\01\00\02\00\00\00")
