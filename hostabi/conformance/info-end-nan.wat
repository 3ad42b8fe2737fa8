;; Info of the end of an episode that is NaN in the row of the end.
;; include role_observe
(func $more (param $t i32) (param $env i32)
  (f32.store (call $place (i32.const 6) (local.get $t) (local.get $env)) (select (f32.const nan) (f32.const 3)
    (i32.or (i32.load8_u (call $place (i32.const 3) (local.get $t) (local.get $env)))
            (i32.load8_u (call $place (i32.const 4) (local.get $t) (local.get $env)))))))
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\09\00\00\00\00\00\08\00\02\10\00\00")
