;; Pictures a second are not negative.
;; include guest
(data (i32.const 0x450) "\00\00\80\bf")
