;; The guest with tensors of roles that not every host runs, from the seventh on. What is optional and not bound is not written.
;; include frame
;; include place
;; include vector
;; include advance
;; include loop_more
(func $bound (param $k i32) (result i32)
  (i32.load (i32.add (i32.const 0x2000) (i32.mul (local.get $k) (i32.const 48)))))
