;; A tensor each 128 bytes: role, index, group, dtype and rank, flags, shape[0]; then what differs.
(data (i32.const 0x480) "\01\00\00\00\00\00\04\00\02\00\00\00")                 ;; action, i32, at t
(data (i32.const 0x4ac) "\02\00\00\00")                                         ;;   of 2 values
(data (i32.const 0x500) "\02\00\00\00\00\00\08\01\c4\00\00\00\02\00\00\00")     ;; observation, f32[2], at t+1, unbounded
(data (i32.const 0x580) "\03\00\00\00\00\00\08\00\02\00\00\00")                 ;; reward, f32, at t
(data (i32.const 0x600) "\04\00\00\00\00\00\01\00\02\00\00\00")                 ;; terminated, u8, at t
(data (i32.const 0x680) "\05\00\00\00\00\00\01\00\02\00\00\00")                 ;; truncated, u8, at t
(data (i32.const 0x700) "\07\00\00\00\00\00\08\01\c8\00\00\00\02\00\00\00")     ;; final observation, f32[2], without time
