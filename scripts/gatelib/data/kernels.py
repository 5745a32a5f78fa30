# SPDX-License-Identifier: GPL-2.0
"""Flavours: how each kernel is configured, and what it boots."""

from __future__ import annotations

FLAVOURS = ("um", "x86_64")
SPACE_BUILD = 1.0

# What each flavour boots.
IMAGES = {"um": "linux", "x86_64": "arch/x86/boot/bzImage"}

# Configuration fragments below the project's root, merged in this order.
FRAGMENTS = {
    "um": (".kunitconfig",),
    "x86_64": ("kunit/x86_64.config", ".kunitconfig"),
}

# What kunit.py is asked to change in its own configuration for UML.  Older
# ones ask for a PCI bus that no test here needs, and that warns at boot
# (um_pci_init) where nobody gave it a device.
KCONFIG_ADD_UM = ("CONFIG_UML_PCI_OVER_VIRTIO=n",)
