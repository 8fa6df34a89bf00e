"""What plugins put into jobs and scripts in the same way, whatever their framework or scheduler."""
