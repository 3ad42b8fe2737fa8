;; A lower bound above the upper one.
;; include guest
(data (i32.const 0x508) "\04") ;; bounds on both sides
(data (i32.const 0x524) "\00\00\80\3f")
