;; The name of a group has no slash and no space.
;; include groups
(data (i32.const 0xc12) "/")
