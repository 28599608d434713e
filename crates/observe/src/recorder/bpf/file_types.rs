//! Where the kernel has what a record says of a file, by its description of its own types. It writes no program.

use crate::btf::Btf;

/// Members of structures that programs read of files, and what those are.
pub(super) struct FileTypes {
    /// From a thread to the files that it has open.
    pub(super) task_files: i16,
    pub(super) task_tgid: i16,
    pub(super) files_table: i16,
    pub(super) table_count: i16,
    pub(super) table_files: i16,
    /// What a file is.
    pub(super) file_inode: i16,
    pub(super) file_own: i16,
    pub(super) file_access: i16,
    pub(super) file_entry: i16,
    pub(super) inode_number: i16,
    pub(super) inode_mode: i16,
    pub(super) inode_system: i16,
    pub(super) inode_own: i16,
    pub(super) system_device: i16,
    pub(super) system_number: i16,
    pub(super) entry_name: i16,
    pub(super) pipe_pages: i16,
    pub(super) eventfd_number: i16,
    pub(super) process_number: i16,
    /// What a socket is.
    pub(super) socket_type: i16,
    pub(super) socket_sock: i16,
    /// From a socket to the number of its inode.
    pub(super) socket_inode_number: i16,
    pub(super) sock_socket: i16,
    pub(super) sock_family: i16,
    pub(super) sock_protocol: i16,
    pub(super) sock_send_buffer: i16,
    pub(super) sock_receive_buffer: i16,
    pub(super) sock_set_buffers: (i16, i32),
    pub(super) tcp_nodelay: (i16, i32),
    pub(super) own_port: i16,
    pub(super) peer_port: i16,
    pub(super) own_ipv4: i16,
    pub(super) peer_ipv4: i16,
    /// A kernel can be without the sixth version.
    pub(super) ipv6: Option<[i16; 2]>,
    pub(super) unix_peer: i16,
    pub(super) unix_address: i16,
    pub(super) address_bytes: i16,
    pub(super) address_name: i16,
    /// A mapping, and what is mapped.
    pub(super) mapping_begin: i16,
    pub(super) mapping_pages: i16,
    pub(super) mapping_file: i16,
    pub(super) mapping_flags: i16,
}

impl FileTypes {
    pub(super) const STRUCTURES: &'static [&'static str] = &[
        "task_struct",
        "files_struct",
        "fdtable",
        "file",
        "inode",
        "super_block",
        "path",
        "dentry",
        "qstr",
        "pipe_inode_info",
        "eventfd_ctx",
        "pid",
        "socket",
        "socket_alloc",
        "sock",
        "sock_common",
        "tcp_sock",
        "unix_sock",
        "unix_address",
        "vm_area_struct",
    ];

    /// As `btf` has them; `None` if one is not there.
    pub(super) fn from_btf(btf: &Btf) -> Option<Self> {
        let at = |structure, member| btf.member(structure, member);
        let common = at("sock", "__sk_common")?;
        let of_common = |member| at("sock_common", member).map(|place| common + place);
        // The name of an entry is a pointer in a structure of its own, for some kernels under another name.
        let name = at("dentry", "d_name").or_else(|| at("dentry", "__d_name"))?;
        let inode = at("socket_alloc", "vfs_inode")? - at("socket_alloc", "socket")?;
        Some(Self {
            task_files: at("task_struct", "files")?,
            task_tgid: at("task_struct", "tgid")?,
            files_table: at("files_struct", "fdt")?,
            table_count: at("fdtable", "max_fds")?,
            table_files: at("fdtable", "fd")?,
            file_inode: at("file", "f_inode")?,
            file_own: at("file", "private_data")?,
            file_access: at("file", "f_mode")?,
            file_entry: at("file", "f_path")? + at("path", "dentry")?,
            inode_number: at("inode", "i_ino")?,
            inode_mode: at("inode", "i_mode")?,
            inode_system: at("inode", "i_sb")?,
            inode_own: at("inode", "i_private")?,
            system_device: at("super_block", "s_dev")?,
            system_number: at("super_block", "s_magic")?,
            entry_name: name + at("qstr", "name")?,
            pipe_pages: at("pipe_inode_info", "max_usage")?,
            eventfd_number: at("eventfd_ctx", "id")?,
            process_number: at("pid", "numbers")?,
            socket_type: at("socket", "type")?,
            socket_sock: at("socket", "sk")?,
            socket_inode_number: inode + at("inode", "i_ino")?,
            sock_socket: at("sock", "sk_socket")?,
            sock_family: of_common("skc_family")?,
            sock_protocol: at("sock", "sk_protocol")?,
            sock_send_buffer: at("sock", "sk_sndbuf")?,
            sock_receive_buffer: at("sock", "sk_rcvbuf")?,
            sock_set_buffers: btf.bits("sock", "sk_userlocks")?,
            tcp_nodelay: btf.bits("tcp_sock", "nonagle")?,
            own_port: of_common("skc_num")?,
            peer_port: of_common("skc_dport")?,
            own_ipv4: of_common("skc_rcv_saddr")?,
            peer_ipv4: of_common("skc_daddr")?,
            ipv6: of_common("skc_v6_rcv_saddr").zip(of_common("skc_v6_daddr")).map(|(own, peer)| [own, peer]),
            unix_peer: at("unix_sock", "peer")?,
            unix_address: at("unix_sock", "addr")?,
            address_bytes: at("unix_address", "len")?,
            address_name: at("unix_address", "name")?,
            mapping_begin: at("vm_area_struct", "vm_start")?,
            mapping_pages: at("vm_area_struct", "vm_pgoff")?,
            mapping_file: at("vm_area_struct", "vm_file")?,
            mapping_flags: at("vm_area_struct", "vm_flags")?,
        })
    }
}
