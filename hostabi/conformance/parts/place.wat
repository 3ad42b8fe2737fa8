;; Where a tensor's row of a time and an environment begins, and how far its elements are apart.
(func $place (param $k i32) (param $t i32) (param $env i32) (result i32)
  (local.set $k (i32.add (i32.const 0x2000) (i32.mul (local.get $k) (i32.const 48))))
  (i32.add (i32.load (local.get $k))
    (i32.add (i32.mul (local.get $t) (i32.load offset=4 (local.get $k)))
             (i32.mul (local.get $env) (i32.load offset=8 (local.get $k))))))
(func $apart (param $k i32) (result i32)
  (i32.load offset=16 (i32.add (i32.const 0x2000) (i32.mul (local.get $k) (i32.const 48)))))
