;; A Box without bounds: what stands there is not looked at, also where it is NaN.
;; include boxed

(data (i32.const 0x488) "\c2")
(data (i32.const 0x4a4) "\00\00\c0\7f\00\00\c0\7f")
(data (i32.const 0xa00) "\00\00\80\ff\00\00\80\ff\00\00\80\7f\00\00\80\7f")
