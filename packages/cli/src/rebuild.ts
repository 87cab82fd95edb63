import type { Command } from 'commander'
import { type MaintenanceFlags, maintenance, maintenanceOptions } from './maintenance.ts'

/** `tollbase rebuild`: makes every projected table anew from the entries. */
export function rebuildCommand(program: Command, finish: (code: number) => void): void {
  maintenanceOptions(program.command('rebuild'))
    .description('make every table anew from the entries of the chains (with the service stopped)')
    .action(async (flags: MaintenanceFlags) => {
      const { rebuild } = await import('@tollbase/server/operator/rebuild')
      finish(await maintenance(flags, rebuild))
    })
}
