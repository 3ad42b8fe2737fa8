//! Files of the folder that the user grants.

#[cfg(target_arch = "wasm32")]
mod wasi {
    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    extern "C" {
        pub fn path_open(fd: i32, lookup: i32, path: *const u8, len: usize, flags: i32, rights: u64, inherited: u64, fdflags: i32, opened: *mut i32) -> i32;
        pub fn fd_filestat_get(fd: i32, stat: *mut u64) -> i32;
        pub fn fd_read(fd: i32, vectors: *const usize, n: usize, read: *mut usize) -> i32;
        pub fn fd_close(fd: i32) -> i32;
    }
}

/// Reads a file of the folder that the user grants, by its path in there: `data = "./maps"` in the table, `--data ./maps` on a command
/// line. The folder is read only, and stays as it was when the module was loaded.
///
/// With the target `wasm32-wasip1` `std::fs::read("/data/level1.txt")` does the same. In a native program it reads below the folder
/// that the variable `RL_DATA` names.
pub fn data(path: &str) -> Result<Vec<u8>, String> {
    read(path).map_err(|code| match code {
        8 => "no folder of data is granted: data = \"DIR\" in the table, --data DIR on a command line".to_string(),
        44 => format!("there is no {path} in the folder of data"),
        _ => format!("{path} cannot be read: error {code} of WASI"),
    })
}

#[cfg(target_arch = "wasm32")]
fn read(path: &str) -> Result<Vec<u8>, i32> {
    const FOLDER: i32 = 3;
    const READ: u64 = 1 << 1;
    let check = |code: i32| if code == 0 { Ok(()) } else { Err(code) };
    let mut fd = 0;
    // SAFETY: the host writes one descriptor.
    check(unsafe { wasi::path_open(FOLDER, 0, path.as_ptr(), path.len(), 0, READ, 0, 0, &mut fd) })?;
    let mut stat = [0u64; 8];
    // SAFETY: a record of WASI has 64 bytes.
    let mut result = check(unsafe { wasi::fd_filestat_get(fd, stat.as_mut_ptr()) });
    let mut all = vec![0u8; stat[4] as usize];
    let mut done = 0;
    while result.is_ok() && done < all.len() {
        let mut n = 0;
        let vector = [all[done..].as_mut_ptr() as usize, all.len() - done];
        // SAFETY: the vector is the rest of all, which the host writes at most.
        result = check(unsafe { wasi::fd_read(fd, vector.as_ptr(), 1, &mut n) });
        if n == 0 {
            break; // shorter than it says
        }
        done += n;
    }
    // SAFETY: it was opened above.
    unsafe { wasi::fd_close(fd) };
    result.map(|()| all)
}

#[cfg(not(target_arch = "wasm32"))]
fn read(path: &str) -> Result<Vec<u8>, i32> {
    let folder = std::env::var_os("RL_DATA").ok_or(8)?;
    std::fs::read(std::path::Path::new(&folder).join(path)).map_err(|_| 44)
}
