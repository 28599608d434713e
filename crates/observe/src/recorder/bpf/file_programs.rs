//! The part of the programs that tells to what descriptors and shared words refer. It reads the kernel's memory by the descriptor and holds
//! nothing: who asks for a descriptor through /proc, or copies it, has the file open for that time, so that the end of a pipe and a lock come
//! late for whoever waits for the owner to close it.
//!
//! A thread is in a call on the descriptor meanwhile. What another thread has freed since may be read, and nothing comes of it but a record
//! that says something wrong: a read of what is not there gives zeros.

use super::layout::{RecordKind, announced, file, record, thread};
use super::programs::{RECORD, TO_DO, Writer};
use crate::recorder::described::PROCESSES;
use Register::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, Stack};
use Width::{Eight, Four};
use sys::bpf_assembler::{Condition, Helper, Label, Register, Width};

/// Where things lie on the stack, below the record: the files of the call, which go into its record, ...
const FILES: i16 = RECORD - 16;
/// ... the one that is looked up, which is a key, its inode and what it has of its own, ...
const FILE: i16 = FILES - 8;
const INODE: i16 = FILE - 8;
const OWN: i16 = INODE - 8;
/// ... a socket of the kernel, and whatever is on the way from one structure to the next, ...
const SOCK: i16 = OWN - 8;
const NEXT: i16 = SOCK - 8;
/// ... which file was told of, and when.
const SEEN: i16 = NEXT - 24;
const SEEN_INODE: i16 = SEEN;
const SEEN_OWN: i16 = SEEN + 8;
const SEEN_AT: i16 = SEEN + 16;
pub(super) const SEEN_BYTES: usize = 24;
/// A mapping: its file, its first page, where it begins, and its flags.
const MAPPING: i16 = SEEN - 32;
/// What is used is told again when it was not for so long, for what it is set to can have changed.
const LONGEST_KNOWN_NS: i32 = 100_000_000;
/// [`crate::recorder::thread::PRIVATE_MEMORY`].
const ALL_ONES: i32 = -1;
/// `VM_SHARED`.
const SHARED: i32 = 8;
const KIND: i32 = 0xf000;
const IS_SOCKET: i32 = 0xc000;
const IS_PIPE: i32 = 0x1000;
const UNIX: i32 = 1;
const TCP: i32 = 6;
/// The bits of `nonagle` and of `sk_userlocks`.
const FEW_BITS: i32 = 15;

impl Writer<'_> {
    /// The call has used no descriptor.
    pub(super) fn no_files(&mut self) {
        self.code.store(Eight, Stack, FILES, 0);
        self.code.store(Eight, Stack, FILES + 8, 0);
    }

    /// Looks up to what the descriptors of the call refer, and tells what was not told. What it `returned` lies there, if it has ended.
    pub(super) fn files_of_call(&mut self, returned: Option<i16>) {
        self.no_files();
        self.code.store(Four, Stack, TO_DO, R7);
        let code = &mut self.code;
        let (by_argument, by_return, by_descriptor, found, done) =
            (code.label(), code.label(), code.label(), code.label(), code.label());
        code.jump_if(R7, Condition::AnyOf, announced::OF_FIRST, by_argument);
        if let Some(returned) = returned {
            let by_word = code.label();
            code.jump_if(R7, Condition::AnyOf, announced::OF_RETURNED, by_return);
            code.jump_if(R7, Condition::AnyOf, announced::FUTEX, by_word);
            code.jump(done);
            code.put(by_return);
            code.load(Eight, R1, R6, returned);
            code.jump(by_descriptor);
            code.put(by_word);
            code.load(Eight, R1, R6, returned);
            code.jump_if(R1, Condition::SignedLess, 0, done);
            self.file_of_word(done);
            self.code.jump(found);
        } else {
            code.jump(done);
        }
        self.code.put(by_argument);
        self.code.load(Eight, R1, R8, thread::ARGUMENTS);
        self.code.put(by_descriptor);
        self.file_of_descriptor(done);
        self.code.put(found);
        self.code.store(Eight, Stack, FILES, R1);
        self.tell_of_file();
        if returned.is_some() {
            let (by_second, by_third, by_descriptor) =
                (self.code.label(), self.code.label(), self.code.label());
            let code = &mut self.code;
            code.jump_if(R7, Condition::AnyOf, announced::OF_SECOND, by_second);
            code.jump_if(R7, Condition::AnyOf, announced::OF_THIRD, by_third);
            code.jump(done);
            code.put(by_second);
            code.load(Eight, R1, R8, thread::ARGUMENTS + 8);
            code.jump(by_descriptor);
            code.put(by_third);
            code.load(Eight, R1, R8, thread::ARGUMENTS + 16);
            code.put(by_descriptor);
            self.file_of_descriptor(done);
            self.code.store(Eight, Stack, FILES + 8, R1);
            self.tell_of_file();
        }
        self.code.put(done);
    }

    /// The record has the files of the call.
    pub(super) fn what_files_it_used(&mut self) {
        for at in [0, 8] {
            self.code.load(Eight, R1, Stack, FILES + at);
            self.code.store(Eight, Stack, RECORD + record::FILES + at, R1);
        }
    }

    /// R1, a descriptor of the thread that runs, becomes the file to which it refers, which is looked up.
    fn file_of_descriptor(&mut self, absent: Label) {
        let types = &self.types.files;
        let code = &mut self.code;
        code.lower_half(R1, R1);
        code.store(Eight, Stack, NEXT, R1);
        code.call(Helper::Task);
        code.load(Eight, R1, R0, types.task_files);
        code.load(Eight, R1, R1, types.files_table);
        code.load(Four, R2, R1, types.table_count);
        code.load(Eight, R3, Stack, NEXT);
        code.jump_if(R3, Condition::AtLeast, R2, absent);
        code.load(Eight, R1, R1, types.table_files);
        code.shift_left(R3, 3);
        code.add(R3, R1);
        self.read_to(FILE, 8);
        self.code.load(Eight, R1, Stack, FILE);
        self.code.jump_if(R1, Condition::Equal, 0, absent);
    }

    /// R1 becomes the file in which the word lies that the call is about, and the second of its files how far from its beginning.
    fn file_of_word(&mut self, absent: Label) {
        let mapping = *self.mapping.get_or_insert_with(|| self.code.label());
        let code = &mut self.code;
        for at in (0..32).step_by(8) {
            code.store(Eight, Stack, MAPPING + at, 0);
        }
        code.call(Helper::Task);
        code.set(R1, R0);
        code.load(Eight, R2, R8, thread::ARGUMENTS);
        code.refer_to_function(R3, mapping);
        code.set(R4, Stack);
        code.add(R4, i32::from(MAPPING));
        code.set(R5, 0);
        code.call(Helper::FindMapping);
        let is_shared = code.label();
        code.load(Eight, R1, Stack, MAPPING + 24);
        code.jump_if(R1, Condition::AnyOf, SHARED, is_shared);
        // No mapping has no flags: it was not found.
        code.jump_if(R1, Condition::Equal, 0, absent);
        code.store(Eight, Stack, FILES + 8, ALL_ONES);
        code.jump(absent);
        code.put(is_shared);
        code.load(Eight, R2, Stack, MAPPING + 8);
        code.shift_left(R2, rustix::param::page_size().ilog2().cast_signed());
        code.load(Eight, R1, R8, thread::ARGUMENTS);
        code.add(R2, R1);
        code.load(Eight, R1, Stack, MAPPING + 16);
        code.subtract(R2, R1);
        code.store(Eight, Stack, FILES + 8, R2);
        code.load(Eight, R1, Stack, MAPPING);
        code.jump_if(R1, Condition::Equal, 0, absent);
        code.store(Eight, Stack, FILE, R1);
    }

    /// The function that is told of the mapping of a word, which R2 is, and notes it where R3 says.
    pub(super) fn function_of_mapping(&mut self) {
        let Some(begin) = self.mapping else { return };
        let types = &self.types.files;
        let code = &mut self.code;
        code.put(begin);
        code.set(R6, R2);
        code.set(R7, R3);
        let members = [types.mapping_file, types.mapping_pages, types.mapping_begin, types.mapping_flags];
        for (to, member) in (0..).step_by(8).zip(members) {
            code.set(R1, R7);
            code.add(R1, to);
            code.set(R2, 8);
            code.set(R3, R6);
            code.add(R3, i32::from(member));
            code.call(Helper::ReadKernel);
        }
        code.exit_with(0);
    }

    /// Tells what the file is that is looked up, unless that was told.
    fn tell_of_file(&mut self) {
        let types = &self.types.files;
        self.read(INODE, 8, FILE, types.file_inode);
        self.read(OWN, 8, FILE, types.file_own);
        self.read(SEEN_INODE, 8, INODE, types.inode_number);
        let code = &mut self.code;
        code.load(Eight, R1, Stack, OWN);
        code.store(Eight, Stack, SEEN_OWN, R1);
        code.store(Eight, Stack, SEEN_AT, R9);
        let (is_new, is_known) = (code.label(), code.label());
        self.refer_to_seen();
        let code = &mut self.code;
        code.call(Helper::MapLookup);
        code.jump_if(R0, Condition::Equal, 0, is_new);
        for (at, seen) in [(0, SEEN_INODE), (8, SEEN_OWN)] {
            code.load(Eight, R1, R0, at);
            code.load(Eight, R2, Stack, seen);
            code.jump_if(R1, Condition::NotEqual, R2, is_new);
        }
        code.jump_if(R7, Condition::AnyOf, announced::ANEW, is_new);
        code.load(Eight, R1, R0, 16);
        code.add(R1, LONGEST_KNOWN_NS);
        code.jump_if(R1, Condition::AtLeast, R9, is_known);
        code.put(is_new);
        self.refer_to_seen();
        let code = &mut self.code;
        code.set(R3, Stack);
        code.add(R3, i32::from(SEEN));
        code.set(R4, 0);
        code.call(Helper::MapUpdate);
        self.describe();
        self.record(RecordKind::File, file::BYTES);
        self.code.load(Four, R7, Stack, TO_DO);
        self.code.put(is_known);
    }

    fn refer_to_seen(&mut self) {
        let code = &mut self.code;
        code.refer(R1, &self.maps.files);
        code.set(R2, Stack);
        code.add(R2, i32::from(FILE));
    }

    /// Fills in what the record of a file says.
    fn describe(&mut self) {
        let types = &self.types.files;
        for at in (0..file::BYTES).step_by(8) {
            self.code.store(Eight, Stack, RECORD + at, 0);
        }
        for (from, to) in [(FILE, file::FILE), (SEEN_INODE, file::INODE)] {
            self.code.load(Eight, R1, Stack, from);
            self.code.store(Eight, Stack, RECORD + to, R1);
        }
        self.read(RECORD + file::MODE, 2, INODE, types.inode_mode);
        self.read(NEXT, 8, INODE, types.inode_system);
        self.read(RECORD + file::DEVICE, 4, NEXT, types.system_device);
        self.read(RECORD + file::FILE_SYSTEM, 8, NEXT, types.system_number);
        self.read(NEXT, 8, FILE, types.file_entry);
        self.read(NEXT, 8, NEXT, types.entry_name);
        self.read(RECORD + file::NAME, file::NAME_BYTES, NEXT, 0);
        let code = &mut self.code;
        let (is_socket, is_pipe, done) = (code.label(), code.label(), code.label());
        code.load(Four, R1, Stack, RECORD + file::MODE);
        code.and(R1, KIND);
        code.jump_if(R1, Condition::Equal, IS_SOCKET, is_socket);
        code.jump_if(R1, Condition::Equal, IS_PIPE, is_pipe);
        self.describe_number();
        self.code.jump(done);
        self.code.put(is_pipe);
        self.read(RECORD + file::NUMBER, 4, OWN, types.pipe_pages);
        self.code.jump(done);
        self.code.put(is_socket);
        self.describe_socket();
        self.code.put(done);
    }

    /// The number of an eventfd, or of the process of a pidfd, which has both at the same place: who reads the record knows what it is.
    fn describe_number(&mut self) {
        let types = &self.types.files;
        self.read(RECORD + file::NUMBER, 4, OWN, types.eventfd_number);
        let code = &mut self.code;
        let is_inode = code.label();
        let read = code.label();
        code.load(Eight, R1, Stack, RECORD + file::FILE_SYSTEM);
        code.jump_if(R1, Condition::Equal, PROCESSES as i32, is_inode);
        // Before Linux 6.9 it is the file that has the process.
        code.load(Eight, R1, Stack, OWN);
        code.store(Eight, Stack, NEXT, R1);
        code.jump(read);
        code.put(is_inode);
        self.read(NEXT, 8, INODE, types.inode_own);
        self.code.put(read);
        self.read(RECORD + file::FAMILY, 4, NEXT, types.process_number);
    }

    fn describe_socket(&mut self) {
        let types = &self.types.files;
        self.read(RECORD + file::NUMBER, 2, OWN, types.socket_type);
        self.read(SOCK, 8, OWN, types.socket_sock);
        for (to, bytes, from) in [
            (file::FAMILY, 2, types.sock_family),
            (file::PROTOCOL, 2, types.sock_protocol),
            (file::SEND_BUFFER, 4, types.sock_send_buffer),
            (file::RECEIVE_BUFFER, 4, types.sock_receive_buffer),
        ] {
            self.read(RECORD + to, bytes, SOCK, from);
        }
        self.read_bits(RECORD + file::SET_BUFFERS, types.sock_set_buffers);
        let code = &mut self.code;
        let (is_unix, is_tcp, is_internet, done) = (code.label(), code.label(), code.label(), code.label());
        code.load(Four, R1, Stack, RECORD + file::FAMILY);
        code.jump_if(R1, Condition::Equal, UNIX, is_unix);
        code.load(Four, R1, Stack, RECORD + file::PROTOCOL);
        code.jump_if(R1, Condition::Equal, TCP, is_tcp);
        code.jump(is_internet);
        code.put(is_unix);
        self.describe_unix();
        self.code.jump(done);
        self.code.put(is_tcp);
        self.read_bits(RECORD + file::NODELAY, types.tcp_nodelay);
        self.code.put(is_internet);
        for (to, bytes, from) in [
            (file::OWN_PORT, 2, types.own_port),
            (file::PEER_PORT, 2, types.peer_port),
            (file::OWN_IPV4, 4, types.own_ipv4),
            (file::PEER_IPV4, 4, types.peer_ipv4),
        ] {
            self.read(RECORD + to, bytes, SOCK, from);
        }
        if let Some([own, peer]) = types.ipv6 {
            self.read(RECORD + file::OWN_IPV6, 16, SOCK, own);
            self.read(RECORD + file::PEER_IPV6, 16, SOCK, peer);
        }
        self.code.put(done);
    }

    fn describe_unix(&mut self) {
        let types = &self.types.files;
        self.read_name(file::OWN_NAME_BYTES);
        self.read(SOCK, 8, SOCK, types.unix_peer);
        self.read(NEXT, 8, SOCK, types.sock_socket);
        self.read(RECORD + file::PEER_INODE, 8, NEXT, types.socket_inode_number);
        let code = &mut self.code;
        let (no_name, done) = (code.label(), code.label());
        code.load(Four, R1, Stack, RECORD + file::OWN_NAME_BYTES);
        code.jump_if(R1, Condition::Equal, 0, no_name);
        self.read(NEXT, 8, SOCK, types.unix_address);
        self.read(RECORD + file::PEER_NAME_BYTES, 4, NEXT, types.address_bytes);
        self.code.jump(done);
        self.code.put(no_name);
        self.read_name(file::PEER_NAME_BYTES);
        self.code.put(done);
    }

    /// The record has the name of the Unix socket that is examined, and how long that is.
    fn read_name(&mut self, bytes_to: i16) {
        let types = &self.types.files;
        self.read(NEXT, 8, SOCK, types.unix_address);
        self.read(RECORD + bytes_to, 4, NEXT, types.address_bytes);
        self.read(RECORD + file::SOCKET_NAME, file::SOCKET_NAME_BYTES, NEXT, types.address_name);
    }

    /// The four bytes at `to` become some bits of the socket that is examined.
    fn read_bits(&mut self, to: i16, (from, shift): (i16, i32)) {
        self.read(to, 1, SOCK, from);
        let code = &mut self.code;
        code.load(Four, R1, Stack, to);
        code.shift_right(R1, shift);
        code.and(R1, FEW_BITS);
        code.store(Four, Stack, to, R1);
    }

    /// Reads so many `bytes` to this place of the stack, `offset` from where the pointer at `base` says.
    fn read(&mut self, to: i16, bytes: i16, base: i16, offset: i16) {
        self.code.load(Eight, R3, Stack, base);
        self.code.add(R3, i32::from(offset));
        self.read_to(to, bytes);
    }

    /// The same from where R3 says.
    fn read_to(&mut self, to: i16, bytes: i16) {
        let code = &mut self.code;
        code.set(R1, Stack);
        code.add(R1, i32::from(to));
        code.set(R2, i32::from(bytes));
        code.call(Helper::ReadKernel);
    }
}
