;; The least reward is a number.
;; include guest
(data (i32.const 0x454) "\00\00\c0\7f\00\00\80\3f")
