;; Info at reset that is NaN in the row of a step that begins an episode.
;; include role
(func $observe (param $k i32) (param $t i32) (param $env i32)
  (call $vector (local.get $k) (local.get $t) (local.get $env))
  (if (i32.eq (local.get $k) (i32.const 1))
    (then (f32.store (call $place (i32.const 6) (local.get $t) (local.get $env))
      (select (f32.convert_i32_s (i32.and (i32.load offset=4 (call $state (local.get $env))) (i32.const 7))) (f32.const nan)
        (i32.eqz (i32.load (call $state (local.get $env)))))))))
(func $more (param $t i32) (param $env i32)
  (f32.store (call $place (i32.const 6) (i32.add (local.get $t) (i32.const 1)) (local.get $env)) (f32.const nan)))
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\12\00\00\00\00\00\08\00\04\00\00\00")
