// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/**
 * Says in public that a log had a root. Whoever runs a log sends the size and the root of its tree; the event holds
 * them, with the sender and the time of its block, for as long as this chain lasts. The contract keeps nothing and
 * nobody owns it: readers choose the senders that they know.
 */
contract Anchors {
    /// `origin` is Keccak-256 of the log's name, the first line of its checkpoints.
    event Anchored(address indexed sender, bytes32 indexed origin, uint256 size, bytes32 root);

    function anchor(bytes32 origin, uint256 size, bytes32 root) external {
        emit Anchored(msg.sender, origin, size, root);
    }
}
