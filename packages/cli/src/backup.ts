import { SetupError } from '@tollbase/server/base/setup-error'
import type { Command } from 'commander'
import { formatBytes } from './format-bytes.ts'
import {
  addMaintenanceOptions,
  type MaintenanceFlags,
  noteLost,
  printSourceLosses,
  refuseEmptyFolder,
  runOffline,
} from './offline-command.ts'

type BackupFlags = MaintenanceFlags & {
  readonly to: string
  readonly keysTo?: string
  readonly withoutKeys?: boolean
}

/** `tollbase backup`: copies log, operational state and blobs into a folder, while the service runs or not. */
export function addBackupCommand(program: Command, finish: (code: number) => void): void {
  addMaintenanceOptions(program.command('backup'))
    .description('copy everything that a restore needs into a folder (while the service runs, too)')
    .requiredOption('--to <folder>', 'where the backup is kept; a later backup replaces it')
    .option('--keys-to <folder>', 'where the keys are copied to, apart from the data')
    .option('--without-keys', 'copy no keys: you keep signing-key.pem and master-keys yourself')
    .action(async ({ to, keysTo, withoutKeys, ...flags }: BackupFlags) => {
      const { createBackup } = await import('@tollbase/server/operator/backup/create-backup')
      finish(
        await runOffline(flags, {
          run: (config, progress) => {
            refuseEmptyFolder(config)
            if ((keysTo === undefined) === (withoutKeys !== true))
              throw new SetupError(
                'a restore needs the keys, and whoever has them can sign as this service: say --keys-to FOLDER, which you keep apart from the backup, or --without-keys',
              )
            return noteLost(createBackup(config, { to, keysTo }, progress))
          },
          print: ({ made_at, chains, tables, blobs }) => {
            const entries = chains.reduce((sum, one) => sum + one.entries, 0)
            const bytes = tables.reduce((sum, one) => sum + one.bytes, 0)
            console.log(
              `${to}: ${chains.length} chains with ${entries} entries as of ${made_at}; ${formatBytes(bytes)}, and ${blobs.files} blobs of ${formatBytes(blobs.bytes)}`,
            )
            printSourceLosses(blobs)
            if (keysTo !== undefined) console.log(`${keysTo}: the keys; keep them apart`)
          },
        }),
      )
    })
}
