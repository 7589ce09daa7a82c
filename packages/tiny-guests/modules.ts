// The kernel modules in the image, and where they are. The other thousands are omitted.

/** Always loaded by the first RAM disk: virtio disk and network, the file system, the power button. */
export const earlyModules = [
  'virtio_pci', 'virtio_mmio', 'virtio_blk', 'crc32c_generic', 'ext4', 'virtio_net', 'evdev', 'button', 'gpio_keys',
] as const // biome-ignore format: a list to read

/** In the first RAM disk, for other kinds of disks. */
export const diskModules = [
  'virtio_scsi', 'ahci', 'ata_piix', 'ata_generic', 'sd_mod', 'sr_mod', 'nvme', 'crct10dif_generic', 'crc64_rocksoft_generic', 'mptspi', 'vmw_pvscsi',
] as const // biome-ignore format: a list to read

/** On the disk. */
export const otherModules = [
  'e1000', 'e1000e', '8139cp', '8139too', 'pcnet32', 'ne2k_pci', 'vmxnet3',
  'virtio_rng', 'virtio_console', 'virtio_balloon', 'qemu_fw_cfg', 'virtiofs', '9p', '9pnet_virtio',
  'virtio_gpu', 'bochs', 'virtio_input', 'psmouse', 'usbhid', 'hid_generic', 'xhci_pci', 'ehci_pci', 'uhci_hcd',
  'isofs', 'cdrom', 'loop', 'overlay', 'vfat', 'nls_ascii', 'nls_cp437', 'nls_iso8859_1', 'tun',
] as const // biome-ignore format: a list to read
