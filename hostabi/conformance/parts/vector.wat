;; Age and bits of the seed, as a tensor of f32[2].
(func $vector (param $k i32) (param $t i32) (param $env i32)
  (local $at i32)
  (local.set $at (call $place (local.get $k) (local.get $t) (local.get $env)))
  (f32.store (local.get $at) (f32.convert_i32_s (i32.load (call $state (local.get $env)))))
  (f32.store (i32.add (local.get $at) (call $apart (local.get $k)))
    (f32.convert_i32_s (i32.and (i32.load offset=4 (call $state (local.get $env))) (i32.const 7)))))
