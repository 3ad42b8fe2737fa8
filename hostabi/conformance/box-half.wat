;; A Box without an upper bound: what stands there is not looked at, also where it is below the lower one.
;; include boxed

(data (i32.const 0x488) "\82")
(data (i32.const 0x4a4) "\00\00\00\40\00\00\40\c0")
(data (i32.const 0xa00) "\00\00\00\40\00\00\00\40\00\00\80\7f\00\00\80\7f")
