;; The least reward is not above the greatest.
;; include guest
(data (i32.const 0x454) "\00\00\00\40\00\00\80\3f")
