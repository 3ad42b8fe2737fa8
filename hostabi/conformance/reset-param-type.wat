;; Reset parameters are of f32: other types wait for a feature.
;; include guest
(data (i32.const 0x420) "\07\00\00\00")
(data (i32.const 0x780) "\0e\00") ;; role
(data (i32.const 0x786) "\04") ;; dtype
(data (i32.const 0x788) "\08\00\00\00") ;; flags
