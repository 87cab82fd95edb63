import type { Command } from 'commander'
export function demoCommand(_program: Command, _finish: (code: number) => void): void {}
