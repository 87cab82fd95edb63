import type { Command } from 'commander'
import {
  addMaintenanceOptions,
  type MaintenanceFlags,
  printLost,
  printReport,
  refuseEmptyFolder,
  runOffline,
} from './offline-command.ts'

type ImportFlags = MaintenanceFlags & {
  readonly from: string
  readonly key: string
  readonly acceptLostBlobs?: boolean
}

/** `tollbase import-app`: takes in an application that another service exported. */
export function addImportCommand(program: Command, finish: (code: number) => void): void {
  addMaintenanceOptions(program.command('import-app'))
    .description('take in an application that another service exported, checking every block')
    .requiredOption('--from <folder>', 'the folder of export-app')
    .requiredOption('--key <vkey>', "its chain's key at the other service, as export-app prints it")
    .option('--accept-lost-blobs', 'go on without the blobs whose files are missing or damaged')
    .action(async ({ from, key, acceptLostBlobs: acceptLost, ...flags }: ImportFlags) => {
      const { importApplication } = await import(
        '@tollbase/server/operator/move/import-application'
      )
      finish(
        await runOffline(flags, {
          run: (config, progress) => {
            refuseEmptyFolder(config)
            return importApplication(config, { from, key, acceptLost }, progress)
          },
          print: (report) => {
            printReport(report)
            if (!report.equal && report.lost !== undefined)
              console.log('--accept-lost-blobs takes in everything else')
            if (!report.equal) return
            const { app, keys, lost } = report
            if (lost !== undefined) printLost(lost)
            console.log(
              `${app} is here; keys that work as before: ${keys}. Start the service, which fills its views`,
            )
          },
        }),
      )
    })
}
