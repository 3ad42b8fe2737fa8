;; A lower bound above the upper one.
;; include guest
(data (i32.const 0x524) "\00\00\80\3f")
